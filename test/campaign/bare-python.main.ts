import { execFile } from 'node:child_process'
import { serve } from '../../campaigns/peers/drivers/serve.ts'

/** A driver without any sandbox: Python of the host, a process a run, which nobody ends at a deadline or with the driver. */
await serve({
  open: (seconds) =>
    Promise.resolve({
      run: (code) =>
        new Promise((resolve, reject) => {
          execFile('python3', ['-c', code], (error, stdout) => {
            if (error === null) resolve(stdout)
            else reject(new Error(error.message))
          })
          if (seconds !== undefined) setTimeout(() => reject(new Error('deadline')), seconds * 1000)
        }),
      close: () => Promise.resolve(),
    }),
})
