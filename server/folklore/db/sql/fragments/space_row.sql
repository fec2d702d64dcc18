-- A row in the shard of the namespace, on a cluster: an insert that reads the namespace from it is sent whole to the node.
cross join packed_namespaces packed where packed.namespace_id = :namespace::uuid
