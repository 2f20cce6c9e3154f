import type { EventEmitter } from 'node:events'
import { SqliteSaver } from '@langchain/langgraph-checkpoint-sqlite'
import { PostgresSaver } from '@langchain/langgraph-checkpoint-postgres'
import type { Checkpointer } from '../../../src/code-agent/index.ts'

/** A checkpointer, until it is disposed of. */
export interface OpenSaver extends AsyncDisposable {
  readonly checkpointer: Checkpointer
}

/** Opens a checkpointer by its place: `postgres://…`, or the path of a file of SQLite. */
export async function openSaver(place: string): Promise<OpenSaver> {
  if (!place.startsWith('postgres')) {
    const checkpointer = SqliteSaver.fromConnString(place)
    return {
      checkpointer,
      async [Symbol.asyncDispose]() {
        const database = checkpointer.db as unknown as { close(): void }
        database.close()
      },
    }
  }
  const checkpointer = PostgresSaver.fromConnString(place)
  // Without a listener, a lost idle connection ends the process.
  const pool = Reflect.get(checkpointer, 'pool') as EventEmitter
  pool.on('error', () => {})
  await checkpointer.setup()
  return { checkpointer, [Symbol.asyncDispose]: () => checkpointer.end() }
}
