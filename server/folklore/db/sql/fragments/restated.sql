        author = d.author, agent = d.agent, created_at = d.created_at, last_recalled_at = d.last_recalled_at,
        recall_count = d.recall_count,
