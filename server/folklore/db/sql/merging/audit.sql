insert into audit (namespace_id, id, at, principal, token_id, agent, action, outcome, amount, ids, detail)
select :into::uuid, a.id, a.at, a.principal, a.token_id, a.agent, a.action, a.outcome, a.amount, a.ids, a.detail
from audit a
where a.namespace_id = :namespace::uuid
