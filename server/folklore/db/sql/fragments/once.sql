-- False for a posting of a word as it is spelled, if the memory also contains its stem (asked.stem; null for a stem):
-- the memory would be counted twice. A subquery for one value, since exists() may be planned to read all postings at
-- once.
            and (asked.stem is null or (
                select q.length
                from postings q
                where q.namespace_id = p.namespace_id and q.lexeme = asked.stem and q.memory_id = p.memory_id
            ) is null)
