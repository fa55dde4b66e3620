"""What every read model needs: database, positions, projector, rebuild."""
