-- Memories in force that an import of pages of :origin made, with their pages: those named in :below, or in folders named
-- there (none: all). Ids of version 5 follow from their pages; a memory that was stored has another version, whatever its
-- metadata is.
select m.id, m.metadata ->> 'document' as document
from memories m
where m.namespace_id = :namespace::uuid
    and m.forgotten_at is null
    and m.superseded_at is null
    and m.metadata ->> 'import' = :origin::text
    and substr(m.id::text, 15, 1) = '5'
    and (cardinality(:below::text[]) = 0 or exists (
        select from unnest(:below::text[]) as named (name)
        where m.metadata ->> 'document' = named.name or starts_with(m.metadata ->> 'document', named.name || '/')
    ))
order by m.id
