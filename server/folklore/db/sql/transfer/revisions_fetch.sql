fetch forward 200 from folklore_revisions
