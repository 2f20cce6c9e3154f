import { execFile } from 'node:child_process'
import { serve } from '../../campaigns/peers/drivers/serve.ts'

/** A driver without a sandbox: each run is a Python process on the host, which no deadline and no end of the driver stops. */
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
