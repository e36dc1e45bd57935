"""How each kind of hook is asked. None of them raises for what a hook did wrong: it comes to no word."""
