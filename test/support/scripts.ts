/** A script that starts four children in new sessions, which ignore all signals that they can, then emits an event and runs endlessly. */
export const FORKING = `import os, signal, time
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        while True:
            time.sleep(1)
print('forked', flush=True)
time.sleep(600)`
