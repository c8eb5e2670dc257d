// Whether all packages are here.
import '@google-cloud/pubsub';
import '@google-cloud/tasks';
import '@octokit/webhooks-methods';
import 'firebase-admin/functions';
import 'google-auth-library';
import 'google-gax';
