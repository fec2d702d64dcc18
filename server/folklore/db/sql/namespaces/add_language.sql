update namespaces set languages = array(select distinct unnest(languages || :language::text) order by 1)
where id = :namespace::uuid and not languages @> array[:language::text]
