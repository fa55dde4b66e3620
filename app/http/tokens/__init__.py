"""The token endpoint of OAuth."""
