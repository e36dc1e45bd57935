// Scenarios as users of the SDK write them: quickstart, custom tool, tool runner, interrupt, pagination and errors.
//
// node stories.mts BASE_URL KEY: each line of the output is a JSON array, ["event", {...}] for everything a stream
// delivered, ["resource", {...}] for every response, ["passed", "name of the scenario"] at the end of each scenario.

import assert from 'node:assert/strict';
import Anthropic from '@anthropic-ai/sdk';
import { betaTool } from '@anthropic-ai/sdk/helpers/beta/json-schema';

const [baseURL, apiKey] = process.argv.slice(2);
const client = new Anthropic({ baseURL, apiKey, authToken: null });
const { agents, environments, sessions } = client.beta;

type Event = Anthropic.Beta.Sessions.BetaManagedAgentsStreamSessionEvents;

const TOOLSET = { type: 'agent_toolset_20260401' } as const;
const WEATHER = {
  type: 'custom',
  name: 'get_weather',
  description: 'The weather in a city.',
  input_schema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
} as const;

function report(kind: string, value: unknown): void {
  console.log(JSON.stringify([kind, value]));
}

function reportResource<T>(resource: T): T {
  report('resource', resource);
  return resource;
}

function ask(script: string): Anthropic.Beta.Sessions.BetaManagedAgentsUserMessageEventParams {
  return { type: 'user.message', content: [{ type: 'text', text: `Please. [[script:${script}]]` }] };
}

async function newSession(tools: any[] = [TOOLSET]): Promise<string> {
  const agent = reportResource(await agents.create({ name: 'Helper', model: 'claude-sonnet-4-5', tools }));
  const environment = reportResource(
    await environments.create({
      name: `typescript-${agent.id}`,
      config: { type: 'cloud', networking: { type: 'unrestricted' } },
    }),
  );
  return reportResource(await sessions.create({ agent: agent.id, environment_id: environment.id, title: 'Story' })).id;
}

/** Opens a stream, then calls `act`, and returns the events up to the first for which `until` is true. */
async function watch(
  id: string,
  act: () => Promise<unknown>,
  until: (event: Event) => boolean = (event) => event.type === 'session.status_idle',
): Promise<Event[]> {
  const stream = await sessions.events.stream(id, { event_deltas: ['agent.message'] });
  await act();
  const received: Event[] = [];
  for await (const event of stream) {
    report('event', event);
    received.push(event);
    if (until(event)) return received;
  }
  throw new Error('the stream ended early');
}

function messageTexts(events: Event[]): string[] {
  return events.flatMap((event) =>
    event.type === 'agent.message' ? event.content.flatMap((block) => ('text' in block ? [block.text] : [])) : [],
  );
}

function stopReason(events: Event[]): any {
  const last = events.at(-1)!;
  assert.equal(last.type, 'session.status_idle');
  return (last as any).stop_reason;
}

const scenarios: Record<string, () => Promise<void>> = {
  async quickstart() {
    const id = await newSession();
    const first = await watch(id, () => sessions.events.send(id, { events: [ask('hello')] }));
    assert.deepEqual(messageTexts(first), ['I will write it.', 'hello.txt is there.']);
    assert.deepEqual(first.filter((event) => event.type === 'agent.tool_use').map((event: any) => event.name), ['bash']);
    assert.equal(stopReason(first).type, 'end_turn');
    const second = await watch(id, () => sessions.events.send(id, { events: [ask('again')] }));
    assert.deepEqual(messageTexts(second), ['Still here.']);
    const session = reportResource(await sessions.retrieve(id));
    assert.equal(session.status, 'idle');
    assert.ok((session.usage.input_tokens ?? 0) > 0);
  },

  async customTool() {
    const id = await newSession([TOOLSET, WEATHER]);
    const asked = await watch(id, () => sessions.events.send(id, { events: [ask('weather')] }));
    const calls = asked.filter((event) => event.type === 'agent.custom_tool_use') as any[];
    assert.deepEqual(calls.map((call) => call.input), [{ city: 'Oslo' }, { city: 'Rome' }]);
    assert.deepEqual(stopReason(asked), { type: 'requires_action', event_ids: calls.map((call) => call.id) });
    const afterResults = await watch(id, () =>
      sessions.events.send(id, {
        events: calls.map((call) => ({
          type: 'user.custom_tool_result' as const,
          custom_tool_use_id: call.id,
          content: [{ type: 'text' as const, text: call.input.city === 'Oslo' ? 'snow' : 'sun' }],
        })),
      }),
    );
    assert.deepEqual(messageTexts(afterResults), ['Snow in Oslo, sun in Rome.']);
    assert.equal(stopReason(afterResults).type, 'end_turn');
  },

  async toolRunner() {
    const id = await newSession([TOOLSET, WEATHER]);
    const cities: string[] = [];
    const tool = betaTool({
      name: 'get_weather',
      description: WEATHER.description,
      inputSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] } as const,
      run: ({ city }) => {
        cities.push(city);
        return 'fine';
      },
    });
    await sessions.events.send(id, { events: [ask('weather')] });
    const posted: boolean[] = [];
    for await (const call of sessions.events.toolRunner(id, { tools: [tool], maxIdleMs: 500 })) {
      posted.push(call.posted);
    }
    assert.deepEqual([cities, posted], [['Oslo', 'Rome'], [true, true]]);
  },

  async interrupt() {
    const id = await newSession();
    const long = 'one word after another '.repeat(50);
    await watch(
      id,
      () => sessions.events.send(id, { events: [ask('slow')] }),
      (event) => event.type === 'event_delta',
    );
    const ended = await watch(id, () => sessions.events.send(id, { events: [{ type: 'user.interrupt' }] }));
    assert.equal(stopReason(ended).type, 'end_turn');
    const [text] = messageTexts(ended);
    assert.ok(text && long.startsWith(text) && text.length < long.length, `the stored text is ${text}`);
    const after = await watch(id, () => sessions.events.send(id, { events: [ask('again')] }));
    assert.deepEqual(messageTexts(after), ['Still here.']);
  },

  async pagination() {
    const agent = reportResource(await agents.create({ name: 'Listed', model: 'claude-sonnet-4-5' }));
    const environment = reportResource(await environments.create({ name: `typescript-${agent.id}` }));
    const made: string[] = [];
    for (let n = 0; n < 7; n++) {
      made.push(reportResource(await sessions.create({ agent: agent.id, environment_id: environment.id })).id);
    }
    for (const order of ['asc', 'desc'] as const) {
      const listed: string[] = [];
      for await (const session of sessions.list({ agent_id: agent.id, limit: 3, order })) listed.push(session.id);
      assert.deepEqual(listed, order === 'asc' ? made : made.toReversed());
    }
    let page = await sessions.list({ agent_id: agent.id, limit: 3, statuses: ['idle', 'running'] });
    const sizes = [page.data.length];
    while (page.hasNextPage()) {
      page = await page.getNextPage();
      sizes.push(page.data.length);
    }
    assert.deepEqual(sizes, [3, 3, 1]);
    const [id] = made;
    await watch(id!, () => sessions.events.send(id!, { events: [ask('hello')] }));
    for (const order of ['asc', 'desc'] as const) {
      const whole: string[] = [];
      for await (const event of sessions.events.list(id!, { order })) whole.push(reportResource(event).id);
      const paged: string[] = [];
      for await (const event of sessions.events.list(id!, { order, limit: 4 })) paged.push(event.id);
      assert.deepEqual(paged, whole);
      assert.equal(new Set(whole).size, whole.length);
    }
    const versions: number[] = [];
    await agents.update(agent.id, { version: 1, system: 'S' });
    for await (const version of agents.versions.list(agent.id, { limit: 1 })) versions.push(version.version);
    assert.deepEqual(versions, [2, 1]);
  },

  async errors() {
    await assert.rejects(sessions.retrieve('sesn_none'), Anthropic.NotFoundError);
    await assert.rejects(agents.create({ name: '', model: 'm' }), Anthropic.BadRequestError);
    const stranger = new Anthropic({ baseURL, apiKey: 'fp_wrong', authToken: null });
    await assert.rejects(stranger.beta.agents.retrieve('agent_none'), Anthropic.AuthenticationError);
    const environment = reportResource(await environments.create({ name: `typescript-${Date.now()}` }));
    await assert.rejects(environments.create({ name: environment.name }), Anthropic.ConflictError);
    reportResource(await environments.delete(environment.id));
  },
};

for (const [name, scenario] of Object.entries(scenarios)) {
  await scenario();
  report('passed', name);
}
