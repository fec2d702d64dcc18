-- Begin a transaction of a token: {mode} is checked in db/roles.py, {key} are 64 hexadecimal digits. One round trip.
begin {mode};
set local role folklore_app;
select folklore_enter('{key}')
