/**
 * A server that runs Python: the body of POST /run is a script, the answer its result as JSON. It knows no users: whoever reaches it
 * may run scripts. docs/scale.md is about it.
 */
import { createServer, type IncomingMessage } from 'node:http'
import { createSandglass, SandglassError } from 'sandglass'

const {
  PORT = '8080',
  SANDBOXES = '2',
  SANDBOX_IMAGE,
  SANDBOX_ROOT_ONLY_DIR,
  SANDBOX_CPU_REQUEST,
  SANDBOX_NETWORK,
} = process.env
const MAX_BYTES = 1024 * 1024
/** More would wait for a sandbox, each with its script in memory. */
const MAX_OPEN = 32

type Answer = readonly [status: number, body: object]

// Cluster, account and namespace are those of the pod of this process.
const sg = await createSandglass({
  engine: 'kubernetes',
  poolSize: Number(SANDBOXES),
  maxOverflow: 0,
  // Refuses a cluster that does not enforce the NetworkPolicy, unless SANDBOX_NETWORK says that scripts may have the network.
  require: SANDBOX_NETWORK === 'open' ? [] : ['network'],
  kubernetes: {
    ...(SANDBOX_IMAGE === undefined ? {} : { image: SANDBOX_IMAGE }),
    ...(SANDBOX_ROOT_ONLY_DIR === undefined ? {} : { rootOnlyDir: SANDBOX_ROOT_ONLY_DIR }),
    ...(SANDBOX_CPU_REQUEST === undefined ? {} : { cpuRequest: Number(SANDBOX_CPU_REQUEST) }),
  },
})

let open = 0

const server = createServer((request, response) => {
  open += 1
  const left = new AbortController()
  response.once('close', () => {
    open -= 1
    left.abort()
  })
  const answered = answer(request, left.signal).catch((error: unknown): Answer => {
    if (!left.signal.aborted) console.error(error)
    if (!(error instanceof SandglassError)) return [500, { error: 'internal' }]
    return [error.retryable ? 503 : 500, { error: error.code }]
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

async function answer(request: IncomingMessage, signal: AbortSignal): Promise<Answer> {
  if (request.url === '/ready') return [200, {}]
  if (request.method !== 'POST' || request.url !== '/run') return [404, { error: 'the only request is POST /run' }]
  if (open > MAX_OPEN) return [503, { error: 'too many requests at a time' }]
  const pieces: Buffer[] = []
  let bytes = 0
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length
    if (bytes > MAX_BYTES) return [413, { error: `a script has at most ${MAX_BYTES} bytes` }]
    pieces.push(piece)
  }
  return [200, await sg.run(Buffer.concat(pieces).toString(), { signal })]
}
