/**
 * Runs a command with a private Docker daemon at DOCKER_HOST, which has gVisor and the image of
 * `npm run image`: `node scripts/with-docker.ts npm test`. Needs root, dockerd, runsc and debootstrap.
 * The machine's own daemon is not touched, and the private one is removed at the end.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { GVISOR, startDaemon } from '../test/support/docker-daemon.ts'
import { whyStuck } from '../test/support/daemon-stacks.ts'
import { descendantsOf } from '../test/support/processes.ts'
import { buildImage } from './image/build.ts'

const [program = 'true', ...args] = process.argv.slice(2)
const interruption = new AbortController()
for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(name, () => interruption.abort(name))

const daemon = await startDaemon({ runtimes: GVISOR })
try {
  const { tag, cached } = await buildImage({
    host: daemon.host,
    onProgress: (line) => console.error(`image: ${line}`),
    signal: interruption.signal,
  })
  console.error(`with-docker: ${daemon.host} has ${tag}${cached ? '' : ', newly built'}`)
  process.exitCode = await run()
  // A hung daemon explains most failures, so its stacks are printed.
  const stuck = process.exitCode === 0 ? undefined : await whyStuck(daemon)
  if (stuck !== undefined) console.error(`with-docker: ${stuck}`)
} finally {
  await daemon.close()
}

async function run(): Promise<number> {
  const child = spawn(program, args, { stdio: 'inherit', env: { ...process.env, DOCKER_HOST: daemon.host } })
  // A terminal sends the signal to the command as well; a second one is harmless. npm does not forward it.
  interruption.signal.addEventListener('abort', () => {
    if (child.pid !== undefined) for (const pid of [...descendantsOf(child.pid), child.pid]) end(pid)
  })
  const [code] = (await once(child, 'exit')) as [number | null]
  return code ?? 1
}

function end(pid: number): void {
  try {
    process.kill(pid, 'SIGTERM')
  } catch {
    // It has already exited.
  }
}
