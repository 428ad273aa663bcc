"""What runs in the sandbox. The marker sends these files there as text; nothing else of this package goes along."""
