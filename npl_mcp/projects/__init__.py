"""Parts of a project besides its documents: the ``directive/`` folder and the git repository."""
