import { createClient } from '@supabase/supabase-js';

// Where `memctl serve` listens. The page's own origin has to be named there: --allow-origin https://app.example
const url = process.env.MEMCTL_URL ?? 'http://127.0.0.1:8787';

// The token says who asks: `memctl token`, or your own login where `memctl serve --jwks URL` knows its keys. The
// second argument is a name that supabase-js wants to have, and no secret.
export const supabase = createClient(url, 'memctl', {
  accessToken: async () => process.env.MEMCTL_TOKEN ?? '',
});
