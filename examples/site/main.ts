import { request } from 'node:http'
import { createSandglass, type Program, type Workspace } from '../../src/index.ts'

const PORT = 8000

/**
 * Starts a web server in a sandbox without a network, a script that changes its page while it runs, and a terminal.
 * `--engine NAME` chooses the engine. Exits with 0 when the page was served before and after the change.
 */
async function main(): Promise<number> {
  const at = process.argv.indexOf('--engine')
  const engine = (at === -1 ? 'auto' : (process.argv[at + 1] ?? 'auto')) as 'auto'
  await using sandglass = await createSandglass({ engine, poolSize: 0 })
  await using workspace = await sandglass.workspace({ files: { 'site/index.html': '<h1>first</h1>\n' } })
  console.log(`a workspace on the engine ${workspace.engine}; its activities are ${workspace.trust}`)

  await using server = await workspace.start('python3', ['-u', '-m', 'http.server', String(PORT)], { cwd: 'site' })
  await readUntil(server, 'Serving')
  const before = await fetchPage(workspace)
  console.log(`GET /  ${before}`)

  await using shell = await workspace.start('bash', ['--norc', '-i'], { tty: true, env: { PS1: '$ ' } })
  // Wait for the prompt: bash would echo a line twice that was typed before it.
  await readUntil(shell, '$ ')
  console.log(`terminal  ${await typeCommand(shell, 'ls site; wc -c site/index.html')}`)

  const edit =
    'page = open("site/index.html").read()\nopen("site/index.html", "w").write(page.replace("first", "second"))'
  const { status } = await workspace.run(edit)
  const after = await fetchPage(workspace)
  console.log(`a script changed the page: ${status}`)
  console.log(`GET /  ${after}`)

  console.log(`terminal  ${await typeCommand(shell, 'cat site/index.html')}`)
  const log = server
    .log()
    .text.split('\n')
    .filter((line) => line.includes('GET'))
  console.log(`log of the server: ${log.length} requests`)
  return before.includes('first') && after.includes('second') ? 0 : 1
}

/** Fetches the page through a connection to the loopback of the sandbox. */
async function fetchPage(workspace: Workspace): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  const asked = request({ path: '/', createConnection: () => workspace.dial(PORT) }, (answer) => {
    let text = ''
    answer.setEncoding('utf8').on('data', (more: string) => (text += more))
    answer.on('end', () => resolve(text.trim())).on('error', reject)
  })
  asked.on('error', reject).end()
  return promise
}

/** Reads the output of a program until it has written a text. */
async function readUntil(program: Program, wanted: string): Promise<string> {
  let text = ''
  while (!removeControls(text).includes(wanted)) {
    const { text: more, status } = await program.poll({ waitMs: 10_000 })
    if (more === '')
      throw new Error(`no ${JSON.stringify(wanted)} in ${JSON.stringify(text)}; the program is ${status}`)
    text += more
  }
  return text
}

/** Types a command into a terminal. Returns its output up to the next prompt. */
async function typeCommand(shell: Program, line: string): Promise<string> {
  await shell.write(line, true)
  const text = removeControls(await readUntil(shell, '\n$ '))
  return `$ ${text.trimEnd().replace(/\n\$$/, '')}`.replaceAll('\n', '\n          ')
}

/** Removes carriage returns from the output of a terminal, and the escape sequences by which bash switches modes. */
function removeControls(text: string): string {
  // oxlint-disable-next-line no-control-regex -- escape sequences are what it removes
  return text.replaceAll(/\u001B\[\?2004[hl]|\r/g, '')
}

process.exitCode = await main()
