-- The same on a cluster, from the row that `space_row` joins.
    packed.namespace_id
