    o.search @@ :expression::tsquery
