"""What a scheduler is: rules, policies, estimates, limits, and what dispatchers see."""
