-- The row itself, once nothing hangs on it any more.
delete from namespaces where id = :namespace::uuid
