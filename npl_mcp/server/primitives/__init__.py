"""What a server offers besides tools: resources, prompts, completions, skills, pages for chat windows."""
