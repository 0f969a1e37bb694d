// A real OpenID provider on a free port, for the tests. Arguments: the folder of its modules, the address browsers are
// sent back to, and `id-token` to put the e-mail into the ID token rather than into userinfo alone, or `strays` to have
// its documents lead to another host. Prints its issuer.
// Whoever is named by `login_hint`, or else by a fourth argument, is signed in at once; `refuse` refuses.
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

const [modules, back, where, usual] = process.argv.slice(2);
const require = createRequire(`${modules}/package.json`);
const { Provider } = await import(pathToFileURL(require.resolve('oidc-provider')).href);

const server = createServer();
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const issuer = `http://127.0.0.1:${server.address().port}`;

const provider = new Provider(issuer, {
  clients: [{
    client_id: 'benchtrail', client_secret: 'the client secret', redirect_uris: [back],
    grant_types: ['authorization_code'], response_types: ['code'],
  }],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
  conformIdTokenClaims: where !== 'id-token',
  features: { devInteractions: { enabled: false } },
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  pkce: { required: () => true },
  cookies: { keys: ['a key for tests'] },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({
      sub: id, email: id.replace('unverified:', ''), email_verified: !id.startsWith('unverified:'), name: 'Ada of the Provider',
    }),
  }),
});

const handle = provider.callback();
server.on('request', async (request, response) => {
  if (where === 'strays' && request.url === '/.well-known/openid-configuration') {
    response.setHeader('content-type', 'application/json');
    return response.end(JSON.stringify({
      issuer, authorization_endpoint: `${issuer}/auth`, token_endpoint: `${issuer}/token`,
      jwks_uri: 'http://169.254.169.254/latest/meta-data/', response_types_supported: ['code'],
      subject_types_supported: ['public'], id_token_signing_alg_values_supported: ['RS256'],
    }));
  }
  if (!request.url.startsWith('/interaction/')) return handle(request, response);
  const { prompt, params, session } = await provider.interactionDetails(request, response);
  let result;
  if (params.login_hint === 'refuse') {
    result = { error: 'access_denied', error_description: 'they do not want to' };
  } else if (prompt.name === 'login') {
    result = { login: { accountId: params.login_hint ?? usual } };
  } else {
    const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
    grant.addOIDCScope(params.scope);
    result = { consent: { grantId: await grant.save() } };
  }
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: false });
});
console.log(issuer);
