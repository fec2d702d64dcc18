insert into usage (namespace_id, memory_id, answer_id, used_at, rank, score, query, session, caller)
select :into::uuid, u.memory_id, u.answer_id, u.used_at, u.rank, u.score, u.query, u.session, u.caller
from usage u
where u.namespace_id = :namespace::uuid and u.memory_id = any(:ids::uuid[])
