/** A script that leaves four children with sessions of their own, who ignore what can be ignored, says so, and stays. */
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
