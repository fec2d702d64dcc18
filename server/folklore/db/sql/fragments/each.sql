-- {statement} for each of :namespaces that has memories, whose words are packed or fresh: Citus asks all shards at once.
select found.* from (
    select p.namespace_id from packed_namespaces p where p.namespace_id = any(:namespaces::uuid[])
    union
    select f.namespace_id from fresh_words f where f.namespace_id = any(:namespaces::uuid[])
) space cross join lateral ({statement}) found
