"""The checks of `doctor`: each looks at one thing, changes nothing, and says in a line what it found."""
