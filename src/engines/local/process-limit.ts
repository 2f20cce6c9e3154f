import { execFile } from 'node:child_process'

const FORK = `
import os, resource
resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
try:
    child = os.fork()
except OSError:
    os._exit(3)
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
`

/**
 * Tries whether the kernel enforces RLIMIT_NPROC for processes of this user. It never does for root of the machine, even
 * where that is the only id of a user namespace.
 */
export function isHeldToProcessLimit(python: string): Promise<boolean> {
  return new Promise((resolve) => {
    execFile(python, ['-I', '-S', '-c', FORK], { cwd: '/', env: {}, timeout: 20_000 }, (error) => {
      resolve(error?.code === 3)
    })
  })
}
