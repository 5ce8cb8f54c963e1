"""The fault campaign of `make chaos`: processes, servers and networks break while pages go out, then all is counted."""
