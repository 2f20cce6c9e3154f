import { jsonlStore, memoryStore, sqliteStore } from '../../../src/journal/index.ts'
import { eventsOf, runEnded, runStarted, scriptGenerated } from './sample-events.ts'

// Writes events of one run: `KIND PLACE RUN COUNT`. With COUNT 0 it writes endlessly until it is killed.
const [kind = '', place = '', runId = '', count = ''] = process.argv.slice(2)
const store = kind === 'jsonl' ? jsonlStore(place) : kind === 'sqlite' ? sqliteStore(place) : memoryStore()
const most = Number(count)

process.stdout.write('ready\n')
process.stdin.once('data', () => {
  const bodies = [runStarted(), ...Array.from({ length: most === 0 ? 5 : most }, () => scriptGenerated())]
  for (const event of eventsOf(runId, most === 0 ? bodies : [...bodies, runEnded()])) void store.append(event)
  process.stdout.write('written\n')
  if (most > 0) process.exit(0)
  // Events written during the kill may be stored or not.
  for (let seq = bodies.length; ; seq += 1) {
    for (const event of eventsOf(runId, [scriptGenerated()])) void store.append({ ...event, seq })
  }
})
