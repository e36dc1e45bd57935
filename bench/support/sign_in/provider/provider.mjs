// An OpenID Connect provider on loopback with accounts, groups and a device flow. Arguments: port, callback URL of the
// client, and its address after signing out. It prints "ready" when it listens. A line on standard input replaces the
// signing keys: "rotate" adds a new one, "replace" also removes the old ones. SIGTERM ends it.
import { createServer } from "node:http";
import { createInterface } from "node:readline";
import { generateKeyPairSync, randomUUID } from "node:crypto";
import Provider from "oidc-provider";

const [port, callback, signedOut] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;
const groups = {
  ann: ["engineering", "admins"],
  ben: ["engineering"],
  cat: ["guests"],
  dan: [],
};

function createKey() {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  return { ...privateKey.export({ format: "jwk" }), use: "sig", alg: "RS256", kid: randomUUID() };
}

function createProvider(keys) {
  const provider = new Provider(issuer, {
    jwks: { keys },
    clients: [
      {
        client_id: "footplate",
        client_secret: "client-secret",
        redirect_uris: [callback],
        post_logout_redirect_uris: [signedOut],
        grant_types: ["authorization_code"],
        response_types: ["code"],
      },
    ],
    scopes: ["openid", "profile", "email", "groups", "offline_access"],
    claims: { openid: ["sub"], profile: ["name"], email: ["email", "email_verified"], groups: ["groups"] },
    pkce: { required: () => true },
    features: { deviceFlow: { enabled: true }, devInteractions: { enabled: true } },
    cookies: { keys: ["test"] },
    async findAccount(_context, id) {
      return {
        accountId: id,
        async claims() {
          return {
            sub: id,
            name: `${id} example`,
            email: `${id}@example.com`,
            email_verified: id !== "cat",
            groups: groups[id] ?? [],
          };
        },
      };
    },
  });
  return provider.callback();
}

let keys = [createKey()];
let handle = createProvider(keys);
createServer((request, response) => handle(request, response)).listen(Number(port), "127.0.0.1", () => {
  console.log("ready");
});
createInterface({ input: process.stdin }).on("line", (line) => {
  keys = line === "replace" ? [createKey()] : [createKey(), ...keys];
  handle = createProvider(keys);
  console.log("rotated");
});
process.on("SIGTERM", () => process.exit(0));
