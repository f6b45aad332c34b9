"""One file a tab: ``build(context)`` lays it out and wires it."""
