/*
 * authorities: the file with the certificates of the authorities that this system trusts.
 *
 * Libraries of a distribution know their distribution's place. A static program runs on all of
 * them, so it looks where they have that file. For the files of io/ only.
 */
#ifndef RIALTO_IO_AUTHORITIES_H
#define RIALTO_IO_AUTHORITIES_H

/* The file in SSL_CERT_FILE, or the one that was found; NULL: the library's own default. */
const char *authorities_file(void);

#endif
