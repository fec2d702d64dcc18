insert into audit (namespace_id, id, at, principal, token_id, agent, action, outcome, amount, ids, detail)
select :namespace::uuid, :id::uuid, :now::timestamptz, :principal::text, :token::uuid, :agent::text, :action::text,
    :outcome::text, :amount::integer, :ids::uuid[], :detail::text
