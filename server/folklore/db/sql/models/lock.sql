-- Lock every model in order of id, so that changes of roles run one after the other.
select id, role from models order by id for update
