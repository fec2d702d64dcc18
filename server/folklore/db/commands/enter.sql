begin {mode};
set local role folklore_app;
select folklore_enter('{key}')
