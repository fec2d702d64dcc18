-- Included by search_expression.sql: m satisfies the expression.
    m.search @@ :expression::tsquery
