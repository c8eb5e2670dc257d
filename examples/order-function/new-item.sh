# Puts an item into the stock of the emulator: new-item.sh NAME PIECES
exec curl --silent --show-error --fail --output /dev/null --request PATCH --header 'Authorization: Bearer owner' \
  --data "{\"fields\": {\"n\": {\"integerValue\": \"$2\"}}}" \
  "http://$FIRESTORE_EMULATOR_HOST/v1/projects/$GOOGLE_CLOUD_PROJECT/databases/(default)/documents/stock/$1"
