select name, holder, leased_until, started_at, finished_at, seconds, outcome, done, error, next_due
from jobs order by name
