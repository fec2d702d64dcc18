    m.search @@ :expression::tsquery
