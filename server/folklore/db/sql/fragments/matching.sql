-- True for a memory m that satisfies the expression.
    m.search @@ :expression::tsquery
