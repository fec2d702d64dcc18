-- Included by recall/expression.sql: m satisfies the expression.
    m.search @@ :expression::tsquery
