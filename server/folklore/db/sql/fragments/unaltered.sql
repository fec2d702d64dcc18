-- True for a memory m whose searched columns have not changed since :as_of: what is indexed is what it was then.
    and not m.changed && :searched::text[]
