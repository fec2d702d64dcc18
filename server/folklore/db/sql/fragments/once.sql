-- Included: a memory that holds the stem of a word (asked.stem; null of a stem itself) holds that word already, and its
-- spelling adds nothing. A subquery for one value, since exists() may be planned to read all postings at once.
            and (asked.stem is null or (
                select q.length
                from postings q
                where q.namespace_id = p.namespace_id and q.lexeme = asked.stem and q.memory_id = p.memory_id
            ) is null)
