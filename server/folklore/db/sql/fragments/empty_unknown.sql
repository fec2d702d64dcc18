-- The same on a cluster, where no namespace may be asked after another: one without memories counts as one with some.
    false
