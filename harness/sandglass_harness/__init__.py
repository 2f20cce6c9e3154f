"""The program inside every Sandglass sandbox: broker (PID 1), zygote and script runtime. Standard library only."""
