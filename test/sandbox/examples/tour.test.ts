import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const MAIN = join(import.meta.dirname, '../../../examples/tour/main.ts')

test('the tour returns its result with Node alone, and names the skipped parts', () => {
  const place = mkdtempSync(join(tmpdir(), 'sandglass-tour-'))
  try {
    symlinkSync(process.execPath, join(place, 'node'))
    const output = execFileSync(process.execPath, ['--disable-warning=ExperimentalWarning', MAIN], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
      env: { PATH: place, HOME: place, DOCKER_HOST: `unix://${place}/no-docker.sock` },
    })
    // Printed and emitted lines arrive on different channels, in any order.
    expect(sorted(output.replace(/after \d+ ms/, 'after 0 ms'))).toEqual(
      sorted(`
Engine pyodide
  passed over: local (bubblewrap_missing)
  passed over: docker (docker_unreachable)

A script with a mistake is sent back before it runs
  line 1: rows is the function planets itself: it is never called
    hint: Call it: rows = planets().
  line 2: 'light_minute' is not defined
    hint: Did you mean light_minutes(million_km)?

Another one runs, and calls functions of this process
  log           8 planets came from the host
  intermediate  Mercury  {"years":0.24,"off_percent":0.15}
  intermediate  Venus    {"years":0.62,"off_percent":0.06}
  intermediate  Earth    {"years":1,"off_percent":0}
  intermediate  Mars     {"years":1.88,"off_percent":-0.04}
  intermediate  Jupiter  {"years":11.86,"off_percent":-0.2}
  intermediate  Saturn   {"years":29.43,"off_percent":-1.26}
  intermediate  Uranus   {"years":83.76,"off_percent":-0.33}
  intermediate  Neptune  {"years":163.75,"off_percent":-2.46}
  stdout        light takes 251 minutes to Neptune

completed after 0 ms
  result        {"law_holds":true,"off_at_most_percent":2.46}
  tool calls    planets ok, light_minutes ok

What held it
  level         language-only, Python 3.14.2
  limits        memory, pids, disk, output, wall
  network       language-only
`),
    )
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
})

function sorted(text: string): string[] {
  return text.split('\n').toSorted()
}
