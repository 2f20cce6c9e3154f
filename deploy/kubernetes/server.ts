/** A server that runs Python: the body of POST /run is a script, the answer its result as JSON. docs/scale.md is about it. */
import { createServer, type IncomingMessage } from 'node:http'
import { createSandglass, SandglassError } from 'sandglass'

const { PORT = '8080', SANDBOXES = '2', SANDBOX_IMAGE, SANDBOX_CPU_REQUEST } = process.env
const MAX_BYTES = 1024 * 1024

type Answer = readonly [status: number, body: object]

// Cluster, account and namespace are those of the pod of this process.
const sg = await createSandglass({
  engine: 'kubernetes',
  poolSize: Number(SANDBOXES),
  maxOverflow: 0,
  kubernetes: {
    ...(SANDBOX_IMAGE === undefined ? {} : { image: SANDBOX_IMAGE }),
    ...(SANDBOX_CPU_REQUEST === undefined ? {} : { cpuRequest: Number(SANDBOX_CPU_REQUEST) }),
  },
})

const server = createServer((request, response) => {
  const answered = answer(request).catch((error: unknown): Answer => {
    return [error instanceof SandglassError && error.retryable ? 503 : 500, { error: String(error) }]
  })
  void answered.then(([status, body]) => {
    response.writeHead(status, { 'content-type': 'application/json' })
    response.end(`${JSON.stringify(body)}\n`)
  })
})

// Runs that have begun end first, then their sandboxes.
process.once('SIGTERM', () => server.close(() => void sg.close()))

// A server that can run nothing ends here, and Kubernetes starts it again. The port opens after it.
await sg.run('pass')
server.listen(Number(PORT))

async function answer(request: IncomingMessage): Promise<Answer> {
  if (request.url === '/ready') return [200, {}]
  if (request.method !== 'POST' || request.url !== '/run') return [404, { error: 'the only request is POST /run' }]
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length
    if (bytes > MAX_BYTES) return [413, { error: `a script has at most ${MAX_BYTES} bytes` }]
    pieces.push(piece)
  }
  return [200, await sg.run(Buffer.concat(pieces).toString())]
}
