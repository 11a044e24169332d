/*
 * authorities: the file with the certificates of the authorities that this system trusts.
 *
 * A library that a distribution has built knows where the distribution keeps this file. A static
 * program runs on all distributions, so it looks in the places that they use. For the files of io/
 * only.
 */
#ifndef RIALTO_IO_AUTHORITIES_H
#define RIALTO_IO_AUTHORITIES_H

/* The file in SSL_CERT_FILE, or the one that was found; NULL: the library's own default. */
const char *authorities_file(void);

#endif
