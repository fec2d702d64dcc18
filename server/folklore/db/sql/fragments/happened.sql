-- What orders equal scores, where the results of several nodes are merged.
    , happened
